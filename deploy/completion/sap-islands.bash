# Completion of sap-server, sap-client and sap-islands in bash: commands and flags from --help, files
# where neither fits.
_sap_islands() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} command=() words=
  if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != -* ]]; then command=("${COMP_WORDS[1]}"); fi
  if [[ $current == -* ]]; then
    words=$("$program" "${command[@]}" --help 2> /dev/null | grep -oE -- '--[a-z][a-z0-9-]+')
  elif ((COMP_CWORD == 1)); then
    words=$("$program" --help 2> /dev/null | sed -nE 's/^ {2,4}([a-z][a-z-]*) .*/\1/p')
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current" | sort -u)
}
complete -o default -F _sap_islands sap-server sap-client sap-islands
