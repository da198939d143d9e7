# Completion of PROGRAM in fish: PROGRAM completion fish | source
function __PROGRAM_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l lines (command $program completion for -- $words[2..] "$last" 2>/dev/null)
    set -l place (string split ' ' -- "$lines[1]") 0
    string join \n -- $lines[2..]
    set -l before (string sub -l $place[2] -- "$last")
    set -l path (string sub -s (math $place[2] + 1) -- "$last")
    switch "$place[1]"
        case none
        case folders
            printf '%s\n' "$before"(__fish_complete_directories "$path")
        case programs
            complete -C "$path"
        case '*'
            printf '%s\n' "$before"(__fish_complete_path "$path")
    end
end
complete -c PROGRAM -e
complete -c PROGRAM -f -k -a '(__PROGRAM_complete)'
