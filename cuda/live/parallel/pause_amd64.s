// func Pause()
TEXT ·Pause(SB), 4, $0-0 // 4: NOSPLIT
	PAUSE
	RET
