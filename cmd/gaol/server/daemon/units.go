package daemon

import (
	_ "embed"
	"strings"
)

//go:embed gaol.service
var serviceUnit string

//go:embed gaol.socket
var socketUnit string

// ServiceUnit returns the unit of the serviceUnit that executes a command line.
func ServiceUnit(command ...string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = quote(word)
	}
	return strings.Replace(serviceUnit, "@EXEC@", strings.Join(words, " "), 1)
}

// SocketUnit returns the unit of the unix socketUnit, which a group may connect to.
func SocketUnit(path, group string) string {
	path = strings.ReplaceAll(path, "%", "%%")
	return strings.NewReplacer("@SOCKET@", path, "@GROUP@", group).Replace(socketUnit)
}

// quote returns a word as systemd reads it in a command line: see systemd.service(5).
func quote(word string) string {
	word = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `$$`, `%`, `%%`, "\n", `\n`).Replace(word)
	if word == "" || strings.ContainsAny(word, " \t'\";") {
		return `"` + word + `"`
	}
	return word
}
