import java.io.File;
import java.nio.file.Files;
import java.util.Properties;

import org.apache.hadoop.minikdc.MiniKdc;

/**
 * A key distribution center of Kerberos on loopback. Arguments: port, a folder, and for each keytab there its name, a
 * colon, and the principals whose keys it gets, with commas between them. The folder gets krb5.conf too, and last of
 * all a file "ready".
 */
final class LoopbackKdc {
    public static void main(String[] arguments) throws Exception {
        Properties settings = MiniKdc.createConf();
        settings.setProperty(MiniKdc.KDC_PORT, arguments[0]);
        File folder = new File(arguments[1]);
        MiniKdc center = new MiniKdc(settings, folder);
        center.start();
        for (int i = 2; i < arguments.length; i++) {
            String[] words = arguments[i].split(":");
            center.createPrincipal(new File(folder, words[0]), words[1].split(","));
        }
        Files.copy(center.getKrb5conf().toPath(), new File(folder, "krb5.conf").toPath());
        Files.createFile(new File(folder, "ready").toPath());
        Thread.currentThread().join();
    }
}
