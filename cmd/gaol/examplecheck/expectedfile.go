package examplecheck

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
	return writeWhole(e.folder.root, p, b, 0o644)
}
