# Completes subcommands of windlass, their flags and the choices of a flag, as `--help` prints them; files elsewhere.
_windlass() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words= choices=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="$("$program" --help 2>/dev/null | awk '/^  [a-z]/ { print $1 }') --help --version"
  else
    local help
    help=$("$program" "${COMP_WORDS[1]}" --help 2>/dev/null)
    # Where the flag before takes one of several words, those; where it takes anything else, files.
    choices=$(printf '%s\n' "$help" | awk -v flag="$previous" '$1 == flag && /^  -/ { print $2 }')
    case $choices in
      *'|'*) words=${choices//|/ } ;;
      *) [ "${current:0:1}" != - ] || words="$(printf '%s\n' "$help" | awk '/^  -/ { print $1 }') --help" ;;
    esac
  fi
  local IFS=$' \t\n'
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _windlass windlass
