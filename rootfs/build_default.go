//go:build ignore

// Command build_default builds the default image if it is missing. `make run` runs it while it compiles bin/gaol.
package main

import (
	"context"
	"fmt"
	"os"

	"gaol/rootfs"
)

func main() {
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, "gaol:", err)
		os.Exit(1)
	}
}

func build() error {
	store, err := rootfs.Open("")
	if err != nil {
		return err
	}
	_, err = store.Build(context.Background(), rootfs.BuildOptions{IfMissing: true, Progress: os.Stderr})
	return err
}
