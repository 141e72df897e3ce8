# Shared by the images of ZooKeeper, BookKeeper and HerdDB, and below the one of Spark: the base and a Java 17 runtime.
FROM debian:bookworm-slim
# the package makes links to manual pages in a folder that the base leaves out
RUN mkdir -p /usr/share/man/man1 && apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null 2>&1 \
    && rm -rf /var/lib/apt/lists/* /var/log/*.log /var/log/apt
