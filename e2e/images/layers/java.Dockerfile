# Shared by the images of ZooKeeper, BookKeeper and HerdDB, and below the one of Spark: the base and a Java 17 runtime.
FROM herdkeeper/debian:local
# the package makes links to manual pages in a folder that the base leaves out
RUN mkdir -p /usr/share/man/man1 && apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null 2>&1 \
    && rm -rf /var/lib/apt/lists/* /var/log/*.log /var/log/apt
# A pod that is restarted has another address under the same name. Java remembers the old one for 30 s, in which clients of a bookie would
# wait ten seconds for nobody, again and again, while the next bookie is restarted already.
RUN sed -i -e 's/^#networkaddress.cache.ttl=.*/networkaddress.cache.ttl=2/' -e 's/^networkaddress.cache.negative.ttl=.*/networkaddress.cache.negative.ttl=1/' \
        /etc/java-17-openjdk/security/java.security \
    && [ "$(grep -c '^networkaddress.cache' /etc/java-17-openjdk/security/java.security)" = 2 ]
COPY archive-classes /usr/local/bin/
