// func pause()
TEXT ·pause(SB), 4, $0-0 // 4: NOSPLIT
	PAUSE
	RET
