import java.io.File;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * One name node and one data node, reached over loopback alone. Arguments: folder, HTTP port of the name node. A line
 * of its output tells the port for Hadoop's own clients, before anything can be written. A folder that is there is
 * taken up with all that is in it.
 *
 * A third argument names a keytab with the keys of hdfs/localhost and HTTP/localhost, and asks for Kerberos, of which a
 * fourth one is the realm. A delegation token of the name node, of its own user "hdfs", is in "token" of the working
 * folder then.
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
        boolean isSecure = arguments.length > 2;
        if (isSecure) {
            askForKerberos(settings, arguments[2], arguments[3]);
        }
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings)
                .format(!new File(arguments[0]).exists())
                .numDataNodes(1)
                .nameNodeHttpPort(Integer.parseInt(arguments[1]))
                .build();
        cluster.waitActive();
        System.out.println("rpc port " + cluster.getNameNodePort());
        cluster.getFileSystem().setPermission(
                new org.apache.hadoop.fs.Path("/"), new org.apache.hadoop.fs.permission.FsPermission((short) 0777));
        if (isSecure) {
            writeToken(cluster, new File("token").getAbsoluteFile());
        }
        System.out.println("active");
        Thread.currentThread().join();
    }

    private static void askForKerberos(Configuration settings, String keytab, String realm) {
        for (String node : new String[] {"namenode", "datanode"}) {
            settings.set("dfs." + node + ".kerberos.principal", "hdfs/localhost@" + realm);
            settings.set("dfs." + node + ".keytab.file", keytab);
        }
        settings.set("dfs.web.authentication.kerberos.principal", "HTTP/localhost@" + realm);
        settings.set("dfs.web.authentication.kerberos.keytab", keytab);
        settings.set("hadoop.security.authentication", "kerberos");
        settings.set("hadoop.security.authorization", "true");
        settings.set("dfs.data.transfer.protection", "authentication");
        settings.setBoolean("dfs.block.access.token.enable", true);
        settings.setBoolean("ignore.secure.ports.for.testing", true);
        UserGroupInformation.setConfiguration(settings);
    }

    private static void writeToken(MiniDFSCluster cluster, File file) throws Exception {
        Credentials tokens = new Credentials();
        Text service = new Text(cluster.getNameNode().getTokenServiceName());
        cluster.getFileSystem().addDelegationTokens("writer", tokens);
        Credentials found = new Credentials();
        tokens.getAllTokens().forEach(token -> {
            token.setService(service);
            found.addToken(service, token);
        });
        found.writeTokenStorageFile(new org.apache.hadoop.fs.Path(file.toURI()), new Configuration());
    }
}
