#!/bin/sh
# Makes the platform's namespace and search attributes; safe to run again.
# Needs the temporal CLI, TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE; TEMPORAL_RETENTION is 30d if unset.
set -eu
: "${TEMPORAL_ADDRESS:?}" "${TEMPORAL_NAMESPACE:?}"
here=$(dirname "$0")

temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
    temporal operator namespace create \
        --namespace "$TEMPORAL_NAMESPACE" --retention "${TEMPORAL_RETENTION:-30d}"

attributes=""
while read -r name type; do
    attributes="$attributes --name $name --type $type"
done <"$here/search-attributes.txt"

# The frontend learns of a new namespace with its next refresh.
tries=0
# shellcheck disable=SC2086  # the list is made of words
until temporal operator search-attribute create --namespace "$TEMPORAL_NAMESPACE" $attributes; do
    tries=$((tries + 1))
    [ "$tries" -lt 30 ] || exit 1
    sleep 2
done
