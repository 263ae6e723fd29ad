#!/bin/bash
# Installs the Debian packages that packages.txt lists under the given sections and that are missing.
# Says what it does; does nothing where all are there.
set -euo pipefail
list="$(dirname "$0")/../packages.txt"

wanted=()
for section in "$@"; do
  found=$(awk -v section="[$section]" '
    { sub(/#.*/, ""); gsub(/[ \t]+/, "") }
    /^\[/ { inside = ($0 == section); if (inside) seen = 1; next }
    inside && $0 != "" { print }
    END { exit seen ? 0 : 1 }' "$list") || { echo "install_packages.sh: packages.txt has no section [$section]" >&2; exit 2; }
  mapfile -t -O "${#wanted[@]}" wanted <<<"$found"
done

if ! command -v dpkg-query >/dev/null; then
  echo "This is no Debian system: make sure that you have what these packages hold: ${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

become_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "Missing Debian packages. As root, run: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  become_root=(sudo)
fi
echo "Installing missing Debian packages: ${missing[*]}"
"${become_root[@]}" apt-get -qq update
"${become_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "${missing[@]}"
