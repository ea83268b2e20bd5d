#!/bin/sh
# HAProxy in a container of its own, next to that of sap-server: loads a certificate again when it
# changes, and stops listening when the server does.
#
#   proxy.sh [haproxy.cfg]
#
# Environment, besides that of haproxy.cfg:
#   SAP_LAME_DUCK_S  --lame-duck-s of the server, which gets SIGTERM at the same time: the proxy
#                    takes connections until then, sends GOAWAY, and ends with its last call
#
# SAP_CERT is a file with certificate and key, or SAP_CERT.key has the key. A pair that HAProxy
# cannot use leaves the one that it has.
set -u

configuration=${1:-/etc/haproxy/haproxy.cfg}

fingerprint() {
  cat "$SAP_CERT" "$SAP_CERT.key" 2> /dev/null | cksum
}

# Until the time is up or a signal comes.
pause() {
  sleep "$1" &
  wait $!
}

leaving=false
trap 'leaving=true' TERM INT
used=$(fingerprint)
haproxy -W -m 1536 -f "$configuration" &
proxy=$!
while kill -0 $proxy 2> /dev/null; do
  if $leaving; then
    trap '' TERM INT
    pause "${SAP_LAME_DUCK_S:-0}"
    kill -USR1 $proxy
    break
  fi
  if [ "$(fingerprint)" != "$used" ]; then
    used=$(fingerprint)
    if haproxy -c -q -f "$configuration"; then
      kill -USR2 $proxy
    else
      echo "proxy.sh: the certificate in $SAP_CERT is not usable; the one of before stays" >&2
    fi
  fi
  $leaving || pause 1
done
wait $proxy
