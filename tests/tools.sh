#!/bin/sh
# Installs Debian's chromium and a small LaTeX where that is possible (root, apt-get) and they are not there. Never fails.
wanted=""
command -v chromium >/dev/null 2>&1 || wanted="$wanted chromium fonts-dejavu-core"
command -v pdflatex >/dev/null 2>&1 || wanted="$wanted texlive-latex-base texlive-latex-recommended texlive-fonts-recommended"
[ -z "$wanted" ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "not installed here:$wanted (the tests that need them are skipped)"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
quick="-o Acquire::http::Timeout=20 -o Acquire::Retries=1"
if (timeout 120 apt-get update -qq $quick && timeout 300 apt-get install -y -qq --no-install-recommends $quick $wanted) >/tmp/weft-tools.log 2>&1; then
    echo "installed:$wanted"
else
    echo "could not install:$wanted (the tests that need them are skipped; see /tmp/weft-tools.log)"
fi
exit 0
