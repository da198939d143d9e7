#compdef PROGRAM
# Completion of PROGRAM in zsh, after compinit: source <(PROGRAM completion zsh)
# Or write it to a file _PROGRAM in a folder of $fpath.
_PROGRAM() {
  local program=${(Q)words[1]} line
  local -a lines shown
  lines=("${(@f)$("${program/#\~\//$HOME/}" completion for -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  for line in "${(@)lines[2,-1]}"; do
    shown+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  (($#shown)) && _describe PROGRAM shown
  case ${lines[1]%% *} in
    none) ;;
    folders) compset -p ${lines[1]##* }; _files -/ ;;
    programs) _command_names -e ;;
    files) compset -p ${lines[1]##* }; _files ;;
    *) _files ;;
  esac
}
if [[ ${funcstack[1]} == _PROGRAM ]]; then
  _PROGRAM "$@"
else
  compdef _PROGRAM PROGRAM
fi
