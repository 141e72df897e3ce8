#!/bin/sh
# Adds to the trusted certificates those of a bundle that are not among them. Usage: trust.sh BUNDLE
set -eu
awk -v folder=/usr/local/share/ca-certificates '
    /BEGIN CERTIFICATE/ { inside = 1; certificate = "" }
    inside { certificate = certificate $0 "\n" }
    /END CERTIFICATE/ {
        inside = 0
        if (FNR == NR) known[certificate]
        else if (!(certificate in known)) printf "%s", certificate > (folder "/machine-" ++n ".crt")
    }' /etc/ssl/certs/ca-certificates.crt "$1"
update-ca-certificates >/dev/null 2>&1
