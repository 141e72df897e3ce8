# Jars of PySpark that the jobs never load, as patterns; sourced by stage-python.sh. the end-to-end tests prove that what is left runs.
unused_jars="
  rocksdbjni-* leveldbjni-*
  spark-connect_* spark-hive* spark-mllib_* spark-mllib-local_* spark-graphx_* spark-pipelines_* spark-repl_* spark-yarn_* spark-ganglia-lgpl_*
  hive-* datanucleus-* derby* jdo-api-* javax.jdo-* bonecp-* HikariCP-* libthrift-* libfb303-* ST4-* antlr-2* antlr-runtime-3* stringtemplate-* JLargeArrays-*
  breeze* spire* cats-kernel* algebra_* arpack* lapack* blas-* JTransforms-* scala-compiler-* pmml-*
  hadoop-yarn-* kafka-* curator-* zookeeper-*
  netty-tcnative-boringssl-static-*-osx-* netty-tcnative-boringssl-static-*-windows-* netty-transport-native-kqueue-*
"
