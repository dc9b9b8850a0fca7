package harness

import "regexp"

var programFolder = regexp.MustCompile(`/run/gaol/[0-9a-z-]+`)

// UnnumberPrograms replaces the names of programs' folders, which differ from run to run, by N.
func UnnumberPrograms(text []byte) string {
	return string(programFolder.ReplaceAll(text, []byte("/run/gaol/N")))
}
