package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// history has what was typed, the latest first, and keeps it in a file: a line for each
// input, in which lineBreak stands where that had a line's end. It is the editor's alone: it
// is not called at once from several sides.
type history struct {
	lines    []string // the latest last
	file     *os.File // nil: nothing is kept
	input    []string // lines of the input that is being typed
	recalled bool     // the line that is being typed may be one of these, or begin as one
	odd      bool     // the input has a lineBreak of its own
}

// lineBreak is a sign that the editor can show, unlike the line's end.
const lineBreak = "␤"

const (
	mostHistory = 1000    // lines
	maxHistory  = 1 << 20 // bytes that are read
	maxKept     = 4096    // bytes of an input
)

// historyPath is where the file is.
func historyPath() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "gaol", "repl_history"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", "gaol", "repl_history"), nil
}

// openHistory reads what was kept. Beside an error there is a history that keeps nothing.
func openHistory() (*history, error) {
	h := &history{}
	path, err := historyPath()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return h, err
	}
	// What root writes is to lie where the path says.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return h, err
	}
	if err := h.load(file); err != nil {
		return h, errors.Join(err, file.Close())
	}
	h.file = file
	return h, nil
}

// load takes the last lines, and has the file forget the others.
func (h *history) load(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &os.PathError{Op: "open", Path: file.Name(), Err: errors.New("it is no file")}
	}
	if err := file.Chmod(0o600); err != nil {
		return err
	}
	from := max(0, info.Size()-maxHistory)
	text := make([]byte, info.Size()-from)
	n, err := file.ReadAt(text, from)
	if err != nil && n < len(text) { // another gaol may have made it shorter
		text = text[:n]
	}
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	if from > 0 {
		lines = lines[1:] // which is cut
	}
	for _, line := range lines {
		if len(line) > 0 {
			h.lines = append(h.lines, harmless(string(line), false))
		}
	}
	if len(h.lines) < 2*mostHistory && from == 0 {
		return nil
	}
	h.lines = h.lines[max(0, len(h.lines)-mostHistory):]
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err = file.WriteString(strings.Join(h.lines, "\n") + "\n")
	return err
}

// begin says that a line is typed next, of the same input or of another one.
func (h *history) begin(goesOn bool) {
	if !goesOn {
		h.keep()
	}
	h.recalled = false
}

// Add takes a line.
func (h *history) Add(line string) {
	h.odd = h.odd || !h.recalled && strings.Contains(line, lineBreak)
	h.input = append(h.input, line)
}

// lineOf is what a line stands for.
func (h *history) lineOf(line string) string {
	if h.recalled {
		return strings.ReplaceAll(line, lineBreak, "\n")
	}
	return line
}

// keep keeps the input, unless it is the last one again, begins with a space, or could not
// be told from another one.
func (h *history) keep() {
	text, odd := strings.Join(h.input, lineBreak), h.odd
	h.input, h.odd = nil, false
	if odd || strings.TrimSpace(text) == "" || strings.HasPrefix(text, " ") || len(text) > maxKept || len(h.lines) > 0 && h.lines[len(h.lines)-1] == text {
		return
	}
	h.lines = append(h.lines, text)
	if len(h.lines) > 2*mostHistory {
		h.lines = h.lines[mostHistory:]
	}
	if h.file != nil {
		_, _ = h.file.WriteString(text + "\n") // a full disk is no reason to end
	}
}

// Len is how many there are.
func (h *history) Len() int { return len(h.lines) }

// At is one of them, 0 the latest.
func (h *history) At(i int) string {
	h.recalled = true
	return h.lines[len(h.lines)-1-i]
}

// close keeps what was typed last, and lets go of the file. Of none it does nothing.
func (h *history) close() {
	if h == nil {
		return
	}
	h.keep()
	if h.file != nil {
		h.file.Close()
	}
}
