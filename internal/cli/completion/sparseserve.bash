_sparseserve() {
  local line=${COMP_LINE:0:COMP_POINT} words kept
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  kept=${words[-1]%"${words[-1]##*[=:]}"} # readline completes what follows = or :
  mapfile -t COMPREPLY < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
  COMPREPLY=("${COMPREPLY[@]#"$kept"}")
  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _sparseserve sparseserve
