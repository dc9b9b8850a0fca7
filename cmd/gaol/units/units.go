package units

import (
	_ "embed"
	"strings"
)

//go:embed gaol.service
var service string

//go:embed gaol.socket
var socket string

// Service returns the unit of the service that executes a command line.
func Service(command ...string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = quote(word)
	}
	return strings.Replace(service, "@EXEC@", strings.Join(words, " "), 1)
}

// Socket returns the unit of the unix socket, which a group may connect to.
func Socket(path, group string) string {
	path = strings.ReplaceAll(path, "%", "%%")
	return strings.NewReplacer("@SOCKET@", path, "@GROUP@", group).Replace(socket)
}

// quote returns a word as systemd reads it in a command line: see systemd.service(5).
func quote(word string) string {
	word = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `$$`, `%`, `%%`, "\n", `\n`).Replace(word)
	if word == "" || strings.ContainsAny(word, " \t'\";") {
		return `"` + word + `"`
	}
	return word
}
