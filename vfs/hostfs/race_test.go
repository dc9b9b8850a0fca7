package hostfs

func raceMode([]string) error { return nil }
func fullMode([]string) error { return nil }
