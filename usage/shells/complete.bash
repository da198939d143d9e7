# Completion of PROGRAM in bash: source <(PROGRAM completion bash)
_PROGRAM() {
  local rest=${COMP_LINE:0:COMP_POINT} words=() lines=() line at
  # bash also cuts words at "=" and ":"; they are joined again where no blank is between them.
  for ((at = 0; at <= COMP_CWORD; at++)); do
    if ((at == 0)) || [[ $rest == [[:space:]]* ]]; then
      words+=("")
      rest=${rest#"${rest%%[![:space:]]*}"}
    fi
    if ((at == COMP_CWORD)); then
      words[-1]+=$rest
    else
      words[-1]+=${COMP_WORDS[at]}
      rest=${rest#"${COMP_WORDS[at]}"}
    fi
  done
  mapfile -t lines < <("${1/#\~\//$HOME/}" completion for -- "${words[@]:1}" 2>/dev/null)
  COMPREPLY=()
  for line in "${lines[@]:1}"; do
    line=${line%%$'\t'*}
    COMPREPLY+=("${line#"${words[-1]%"$2"}"}")
  done
  case ${lines[0]%% *} in
    none) ;;
    folders) compopt -o dirnames ;;
    programs) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "$2") ;;
    *) compopt -o default ;;
  esac
}
complete -F _PROGRAM PROGRAM
