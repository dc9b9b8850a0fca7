package repl

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/report"
)

// history implements term.History with a file that lasts. Each input is one entry and
// one line of the file; an input of several lines has lineBreak instead of line feeds.
// It is not safe for concurrent use.
type history struct {
	entries   []string // the latest last
	file      *os.File // nil: nothing is written
	input     []string // lines of the current input
	recalled  bool     // the current line may come from an entry, and lineBreak means a line feed
	ambiguous bool     // the user typed lineBreak, so that the input cannot be an entry
}

// lineBreak is visible in the line editor, unlike a line feed.
const lineBreak = "␤"

// Twice maxEntries may be kept, so that the file is written anew once in a thousand inputs
// and not with each. A longer entry than maxEntry is a pasted file rather than something to
// recall line by line.
const (
	maxEntries     = 1000
	maxHistoryFile = 1 << 20 // bytes that are read
	maxEntry       = 4096    // bytes
)

// historyPath returns the path that the XDG Base Directory Specification defines for persistent
// state that is neither configuration nor worth a backup.
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

// openHistory reads the file. With an error it still returns a history, which lasts
// for the session only.
func openHistory() (*history, error) {
	h := &history{}
	path, err := historyPath()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return h, err
	}
	// O_NOFOLLOW: a symbolic link must not redirect what root writes. O_NONBLOCK: opening a
	// FIFO must not block, because load rejects it.
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

// load reads the last entries, and shortens the file if it has many more.
func (h *history) load(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &os.PathError{Op: "open", Path: file.Name(), Err: errors.New("it is not a file")}
	}
	if err := file.Chmod(0o600); err != nil { // what users type may have secrets
		return err
	}
	from := max(0, info.Size()-maxHistoryFile)
	text, err := io.ReadAll(io.NewSectionReader(file, from, maxHistoryFile))
	if err != nil {
		return err
	}
	lines := bytes.Split(text, []byte("\n"))
	if from > 0 {
		lines = lines[1:] // the beginning of the first one is missing
	}
	for _, line := range lines {
		if len(line) > 0 {
			h.entries = append(h.entries, report.Sanitize(string(line), false))
		}
	}
	if len(h.entries) < 2*maxEntries && from == 0 {
		return nil
	}
	h.entries = h.entries[max(0, len(h.entries)-maxEntries):]
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err = file.WriteString(strings.Join(h.entries, "\n") + "\n")
	return err
}

// beginLine announces a line, of the same input if continued, else of a new one.
func (h *history) beginLine(continued bool) {
	if !continued {
		h.store()
	}
	h.recalled = false
}

// Add appends a line to the current input.
func (h *history) Add(line string) {
	h.ambiguous = h.ambiguous || !h.recalled && strings.Contains(line, lineBreak)
	h.input = append(h.input, line)
}

// dropLine forgets the last line of the current input, which the user has abandoned.
func (h *history) dropLine() { h.input = h.input[:len(h.input)-1] }

// expand returns the code of a line that the editor returned.
func (h *history) expand(line string) string {
	if h.recalled {
		return strings.ReplaceAll(line, lineBreak, "\n")
	}
	return line
}

// store makes the current input an entry, unless it is blank, ambiguous, too long or equal
// to the last entry, or begins with a space.
func (h *history) store() {
	text, ambiguous := strings.Join(h.input, lineBreak), h.ambiguous
	h.input, h.ambiguous = nil, false
	if ambiguous || strings.TrimSpace(text) == "" || strings.HasPrefix(text, " ") || len(text) > maxEntry || len(h.entries) > 0 && h.At(0) == text {
		return
	}
	h.entries = append(h.entries, text)
	if len(h.entries) > 2*maxEntries {
		h.entries = h.entries[maxEntries:]
	}
	if h.file != nil {
		_, _ = h.file.WriteString(text + "\n") // a full disk must not end the session
	}
}

// Len returns the number of entries.
func (h *history) Len() int { return len(h.entries) }

// At returns an entry, 0 the latest. The line editor calls it when the user recalls one.
func (h *history) At(i int) string {
	h.recalled = true
	return h.entries[len(h.entries)-1-i]
}

// close stores the last input and closes the file.
func (h *history) close() {
	h.store()
	if h.file != nil {
		h.file.Close()
	}
}
