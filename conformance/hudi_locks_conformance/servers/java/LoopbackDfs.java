import java.io.File;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * One name node and one data node, reached over loopback alone. Arguments: folder, HTTP port of the name node. A line
 * of its output tells the port for Hadoop's own clients, before anything can be written. A folder that is there is
 * taken up with all that is in it.
 */
public final class LoopbackDfs {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, arguments[0]);
        settings.set("dfs.namenode.rpc-bind-host", "127.0.0.1");
        settings.set("dfs.datanode.hostname", "127.0.0.1");
        settings.setBoolean("dfs.client.use.datanode.hostname", true);
        settings.setBoolean("dfs.permissions.enabled", true);
        // a writer asks again this soon whether its block arrived; the default of 400 ms makes small files slow
        settings.setInt("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", 10);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings)
                .format(!new File(arguments[0]).exists())
                .numDataNodes(1)
                .nameNodeHttpPort(Integer.parseInt(arguments[1]))
                .build();
        cluster.waitActive();
        System.out.println("rpc port " + cluster.getNameNodePort());
        cluster.getFileSystem().setPermission(
                new org.apache.hadoop.fs.Path("/"), new org.apache.hadoop.fs.permission.FsPermission((short) 0777));
        System.out.println("active");
        Thread.currentThread().join();
    }
}
