#!/usr/bin/env bash
# Makes the certificates and keys of the tests of TLS (Java, and operator/tests/unit), for a hundred years. The keys guard nothing.
#
#   authority.crt       whom clients trust                  stranger.crt   another authority
#   node.crt            an RSA certificate of the authority, for localhost and the nodes of the database `db` in the namespace `demo`
#   node-pkcs8.key      its key                             node-pkcs1.key the same as cert-manager writes it by default
#   node-encrypted.key  the same with a password
#   curve.crt           an EC certificate, for the same names
#   curve-sec1.key      its key as cert-manager writes it   curve-pkcs8.key the same
#   expired.crt         of the key of node.crt; it was valid until yesterday
set -euo pipefail
cd "$(dirname "$0")"
days=36500
names='subjectAltName=DNS:localhost,DNS:*.db-herddb-nodes.demo.svc'

authority() { # FILE NAME
  openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/$1.key" -out "$1.crt" -days $days -subj "/CN=$2" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign 2>/dev/null
}

signed() { # FILE KEY DAYS
  openssl req -new -key "$2" -subj "/CN=a SQL node" -out "$work/request"
  openssl x509 -req -in "$work/request" -CA authority.crt -CAkey "$work/authority.key" -CAcreateserial -CAserial "$work/serial" \
    -days "$3" -extfile <(echo "$names") -out "$1" 2>/dev/null
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
authority authority 'the authority of the tests'
authority stranger 'a stranger'
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out node-pkcs8.key 2>/dev/null
openssl rsa -traditional -in node-pkcs8.key -out node-pkcs1.key 2>/dev/null
openssl ecparam -name prime256v1 -genkey -out curve-sec1.key
openssl pkcs8 -topk8 -nocrypt -in curve-sec1.key -out curve-pkcs8.key
openssl pkcs8 -topk8 -in node-pkcs8.key -passout pass:told-nobody -out node-encrypted.key
signed node.crt node-pkcs8.key $days
signed curve.crt curve-sec1.key $days
signed expired.crt node-pkcs8.key -1
