package fleet

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"gaol/cmd/gaol/server/fleet/identity"
)

// tokenBlock is the type of the PEM block with the secret of the fleet's engine, which follows the authority in a backup.
const tokenBlock = "GAOL ENGINE TOKEN"

// Export returns a backup of the fleet's authority from a folder. The backup is a secret: it admits any machine to the fleet.
func Export(dir string) ([]byte, error) {
	f := &Fleet{Options: Options{Dir: dir}}
	authority, err := identity.ReadAuthority(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("this machine does not have the fleet's authority: ask one with an engine, see gaol fleet nodes")
	}
	if err == nil {
		err = f.readState()
	}
	if err != nil {
		return nil, err
	}
	text, err := authority.MarshalText()
	return append(text, pem.EncodeToMemory(&pem.Block{Type: tokenBlock, Bytes: []byte(f.state.EngineToken)})...), err
}

// Import makes a machine that is in no fleet the one with the authority of a backup. After the next gaol serve --fleet it runs an engine.
func Import(dir string, backup []byte) error {
	authority, err := identity.ParseAuthority(backup)
	if err != nil {
		return fmt.Errorf("the backup: %w", err)
	}
	var token []byte
	for block, rest := pem.Decode(backup); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == tokenBlock {
			token = block.Bytes
		}
	}
	if len(token) == 0 {
		return errors.New("the backup lacks the secret of the engine")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f := &Fleet{Options: Options{Dir: dir}}
	if err := f.readState(); err != nil {
		return err
	}
	_, node := identity.ReadNode(dir)
	if _, own := identity.ReadAuthority(dir); node == nil || own == nil {
		return fmt.Errorf("this machine is in a fleet: remove %s first", dir)
	}
	f.state.EngineToken = string(token)
	only := server{Name: identity.NewID()}
	f.state.Generation = generation{time.Now().Unix(), identity.NewID(), []server{only}} // later than any that is lost
	return errors.Join(os.Mkdir(f.serverDir(only.Name), 0o700), authority.Write(dir), f.writeState())
}
