package stdio

import (
	"os"
)

// Pipes are the host's and the guest's ends of the files that a run gets.
type Pipes struct {
	Guest []*os.File // the run's descriptors from 0 on

	host    []*os.File
	readers []*Reader
}

// FromGuest adds a descriptor that the run writes to.
func (p *Pipes) FromGuest() (*Reader, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.Guest = append(p.Guest, w)
	return p.addReader(NewReader(r)), nil
}

// ToGuest adds a descriptor that the run reads from.
func (p *Pipes) ToGuest() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.host, p.Guest = append(p.host, w), append(p.Guest, r)
	return w, nil
}

func (p *Pipes) addReader(r *Reader) *Reader {
	p.host, p.readers = append(p.host, r.file), append(p.readers, r)
	return r
}

// End says that the run has ended, and makes all readers return what it has written.
func (p *Pipes) End() {
	for _, r := range p.readers {
		r.End()
	}
}

// CloseGuest closes the guest's ends, once the run has them. A reader gets the end of the
// stream only when no process has the other end open, this one included.
func (p *Pipes) CloseGuest() {
	for _, f := range p.Guest {
		f.Close()
	}
	p.Guest = nil
}

// Close closes all files.
func (p *Pipes) Close() {
	p.CloseGuest()
	for _, f := range p.host {
		f.Close()
	}
}
