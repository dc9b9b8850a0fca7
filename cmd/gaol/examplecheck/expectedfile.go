package examplecheck

import (
	"crypto/rand"
	"os"
	"path"
)

// expectedEnding is that of the file with the expected output of an example.
const expectedEnding = ".expected.json"

// maxExpected is the most bytes that such a file may have.
const maxExpected = 16 << 20

// ExpectedFile returns the name of the file beside e with its expected output. All examples of a
// page have the same.
func (e *Example) ExpectedFile() string { return e.File + expectedEnding }

// ReadExpected reads ExpectedFile. The error is fs.ErrNotExist without one.
func (e *Example) ReadExpected() ([]byte, error) {
	p, err := e.folder.path(e.ExpectedFile())
	if err != nil {
		return nil, err
	}
	return readRegular(e.folder.root, p, maxExpected)
}

// WriteExpected replaces ExpectedFile as a whole. It follows no symbolic link.
func (e *Example) WriteExpected(b []byte) error {
	p, err := e.folder.path(e.ExpectedFile())
	if err != nil {
		return err
	}
	temporary := path.Join(path.Dir(p), "."+rand.Text()+".tmp")
	file, err := e.folder.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(b)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = e.folder.root.Rename(temporary, p)
	}
	if err != nil {
		_ = e.folder.root.Remove(temporary)
	}
	return err
}
