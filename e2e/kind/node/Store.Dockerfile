# A kind node that takes over the images of the store before its containerd starts.
ARG NODE
FROM $NODE
COPY take-over-images.sh fill-store.sh /kind/bin/
RUN chmod 755 /kind/bin/take-over-images.sh /kind/bin/fill-store.sh && mkdir -p /etc/systemd/system/containerd.service.d \
    && printf '[Service]\nExecStartPre=/kind/bin/take-over-images.sh\n' > /etc/systemd/system/containerd.service.d/images.conf
