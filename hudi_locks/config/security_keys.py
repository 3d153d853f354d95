"""Keys of connections that prove who speaks to whom, and of rights; Hudi has none of them."""

from __future__ import annotations

from hudi_locks.config.key import Key

ZOOKEEPER_USE_SSL = Key(
    "hudi_locks.zookeeper.use_ssl", bool, False, "whether ZooKeeper is spoken to by TLS, at its secure port"
)
ZOOKEEPER_SSL_CA_FILE = Key(
    "hudi_locks.zookeeper.ssl.ca_file", str, None, "PEM file of authorities to trust beside the system's"
)
ZOOKEEPER_SSL_CERT_FILE = Key(
    "hudi_locks.zookeeper.ssl.cert_file", str, None, "PEM file of this client's certificate, where servers ask for one"
)
ZOOKEEPER_SSL_KEY_FILE = Key("hudi_locks.zookeeper.ssl.key_file", str, None, "PEM file of that certificate's key")
ZOOKEEPER_SSL_KEY_PASSWORD = Key(
    "hudi_locks.zookeeper.ssl.key_password", str, None, "password of the key's file, if it has one", secret=True
)
ZOOKEEPER_SSL_CHECK_HOSTNAME = Key(
    "hudi_locks.zookeeper.ssl.check_hostname",
    bool,
    True,
    "whether the server's certificate must be one for the host of the url",
)
ZOOKEEPER_DIGEST = Key(
    "hudi_locks.zookeeper.digest",
    str,
    None,
    "user:password of ZooKeeper's digest scheme, for nodes that are not open to all",
    secret=True,
)
ZOOKEEPER_SASL_MECHANISM = Key(
    "hudi_locks.zookeeper.sasl.mechanism",
    str,
    "DIGEST-MD5",
    "how a login by SASL is done: by user and password, or by the Kerberos ticket of this process (GSSAPI), which needs"
    " pip install 'hudi-locks[kerberos]'",
    choices=("DIGEST-MD5", "GSSAPI"),
)
ZOOKEEPER_SASL_PRINCIPAL = Key(
    "hudi_locks.zookeeper.sasl.principal",
    str,
    "zookeeper/_HOST",
    "principal of the servers, for GSSAPI; with @REALM where it is not the default realm",
)
ZOOKEEPER_SASL_USER = Key(
    "hudi_locks.zookeeper.sasl.user", str, None, "user of a login by SASL (DIGEST-MD5); needs pip install 'kazoo[sasl]'"
)
ZOOKEEPER_SASL_PASSWORD = Key("hudi_locks.zookeeper.sasl.password", str, None, "that user's password", secret=True)
ZOOKEEPER_ACL = Key(
    "hudi_locks.zookeeper.acl",
    str,
    "open",
    "whom nodes of locks are made for: open, to all, as Hudi makes them; or creator, who is logged in as their maker",
)
HIVE_USE_SSL = Key(
    "hudi_locks.hive_metastore.use_ssl",
    bool,
    False,
    "whether locks and catalogs speak TLS with the metastore; hive.metastore.use.SSL of hive-site.xml if absent",
)
HIVE_USE_KERBEROS = Key(
    "hudi_locks.hive_metastore.use_kerberos",
    bool,
    False,
    "whether locks and catalogs log in to the metastore by Kerberos, which needs pip install 'hudi-locks[kerberos]';"
    " true with a principal, and hive.metastore.sasl.enabled of hive-site.xml if absent",
)
HIVE_PRINCIPAL = Key(
    "hudi_locks.hive_metastore.principal",
    str,
    None,
    "principal of the metastore, as hive/_HOST@REALM; hive.metastore.kerberos.principal of hive-site.xml if absent",
)
HIVE_CA_FILE = Key(
    "hudi_locks.hive_metastore.ca_file",
    str,
    None,
    "PEM file with the authority of the metastore's certificate; absent where the system trusts it",
)
STORAGE_CA_FILE = Key(
    "hudi_locks.storage.ca_file",
    str,
    None,
    "PEM file, on every machine, with the authority of the store's certificate; absent where the system trusts it",
)
