complete -c sparseserve -a '(sparseserve __complete (commandline -opc)[2..] (commandline -ct | string collect -a) 2>/dev/null)'
