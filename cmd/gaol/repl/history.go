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
	entries []string // the latest last
	file    *os.File // nil: nothing is written
}

// lineBreak is visible in the line editor, unlike a line feed.
const lineBreak = "␤"

// The file may have twice maxEntries, so that it is written anew once in a thousand inputs
// and not with each. A longer entry than maxEntry is a pasted file rather than something to
// recall.
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

// Add does nothing: the session keeps whole inputs, and none that were abandoned.
func (h *history) Add(string) {}

// keep makes an input an entry, unless it is blank, too long or equal to the last entry, or begins with a space.
func (h *history) keep(code string) {
	text := strings.ReplaceAll(code, "\n", lineBreak)
	if strings.TrimSpace(code) == "" || strings.HasPrefix(text, " ") || len(text) > maxEntry || len(h.entries) > 0 && h.At(0) == text {
		return
	}
	h.entries = append(h.entries, text)
	if h.file != nil {
		_, _ = h.file.WriteString(text + "\n") // a full disk must not end the session
	}
}

// Len returns the number of entries.
func (h *history) Len() int { return len(h.entries) }

// At returns an entry, 0 the latest.
func (h *history) At(i int) string { return h.entries[len(h.entries)-1-i] }

// close closes the file, if there is one.
func (h *history) close() {
	if h.file != nil {
		h.file.Close()
	}
}
