# Shared by the operator's image: the base and Debian's Python 3.11.
FROM herdkeeper/debian:local
RUN apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-minimal python3 >/dev/null 2>&1 \
    && rm -rf /var/lib/apt/lists/* /var/log/*.log /var/log/apt
