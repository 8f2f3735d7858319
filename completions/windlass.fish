# Completes subcommands of windlass, their flags and the choices of a flag, as `--help` prints them; files elsewhere.
function __windlass_words
    set -l tokens (commandline -opc)
    set -l program $tokens[1]
    if test (count $tokens) -eq 1
        $program --help 2>/dev/null | awk '/^  [a-z]/ { print $1 }'
        printf '%s\n' --help --version
        return
    end
    set -l help ($program $tokens[2] --help 2>/dev/null | string collect)
    set -l choices (printf '%s\n' $help | awk -v flag="$tokens[-1]" '$1 == flag && /^  -/ { print $2 }')
    if string match -q '*|*' -- "$choices"
        string split '|' -- $choices
    else if string match -q -- '-*' (commandline -ct)
        printf '%s\n' $help | awk '/^  -/ { print $1 }'
        echo --help
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c windlass -f -a '(__windlass_words)'
