# Shared by Spark's image: the Java layer and Debian's Python 3.11.
FROM herdkeeper/java:local
RUN apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-minimal python3 procps >/dev/null 2>&1 \
    && rm -rf /var/lib/apt/lists/* /var/log/*.log /var/log/apt
