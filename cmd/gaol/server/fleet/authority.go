package fleet

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/cmd/gaol/server/tenant"
)

// readAuthority reads the authority of a fleet with an external engine.
func (f *Fleet) readAuthority() error {
	text, err := flags.ReadFile(f.Authority, maxMessage, tenant.CheckSecret)
	if err == nil {
		f.authority, err = identity.ParseAuthority(text)
	}
	if err != nil {
		return fmt.Errorf("authority: %s: %w", f.Authority, err)
	}
	return nil
}

// found makes a fleet.
func (f *Fleet) found() (err error) {
	if _, err := identity.ReadNode(f.Dir); err == nil {
		return fmt.Errorf("this machine is a node of another fleet: remove %s to make a new one", f.Dir)
	}
	if f.authority, err = identity.NewAuthority(); err != nil {
		return err
	}
	f.state.EngineToken = cmp.Or(f.state.EngineToken, rand.Text()) // its engine may have batch runs
	f.madeWith = identity.NewToken(f.authority.Cert)
	return errors.Join(f.writeState(), f.authority.Write(f.Dir))
}

// certify returns a new identity by the own authority.
func (f *Fleet) certify() (*identity.Node, error) {
	r, err := identity.NewRequest()
	if err != nil {
		return nil, err
	}
	cert, err := f.authority.Sign(r.DER, identity.NewID())
	if err != nil {
		return nil, err
	}
	return identity.NewNode(f.Dir, r, cert.Raw, f.authority.Cert)
}
