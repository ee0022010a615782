_sparseserve() {
  local -a found
  found=("${(@f)$($words[1] __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=(${found:#})
  (( $#found )) || { _files; return }
  compadd -S '' -- ${(M)found:#*=}
  compadd -- ${found:#*=}
}
compdef _sparseserve sparseserve
