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

// readExternalAuthority reads the authority of a fleet with an external engine.
func (f *Fleet) readExternalAuthority() error {
	text, err := flags.ReadFile(f.Authority, maxMessage, tenant.CheckSecret)
	var authority *identity.Authority
	if err == nil {
		authority, err = identity.ParseAuthority(text)
	}
	if err != nil {
		return fmt.Errorf("authority: %s: %w", f.Authority, err)
	}
	f.authority.Store(authority)
	return nil
}

func (f *Fleet) readAuthority() error {
	authority, err := identity.ReadAuthority(f.Dir)
	f.authority.Store(authority)
	return err
}

// found makes a fleet.
func (f *Fleet) found() error {
	if _, err := identity.ReadNode(f.Dir); err == nil {
		return fmt.Errorf("this machine is a node of another fleet: remove %s to make a new one", f.Dir)
	}
	authority, err := identity.NewAuthority()
	if err != nil {
		return err
	}
	f.authority.Store(authority)
	f.state.EngineToken = cmp.Or(f.state.EngineToken, rand.Text()) // its engine may have batch runs
	f.madeWith = identity.NewToken(authority.Cert)
	return errors.Join(f.writeState(), authority.Write(f.Dir))
}

// certify returns a new identity by the own authority.
func (f *Fleet) certify() (*identity.Node, error) {
	r, err := identity.NewRequest()
	if err != nil {
		return nil, err
	}
	authority := f.authority.Load()
	cert, err := authority.Sign(r.DER, identity.NewID())
	if err != nil {
		return nil, err
	}
	return identity.NewNode(f.Dir, r, cert.Raw, authority.Cert)
}
