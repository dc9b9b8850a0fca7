package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"gaol/cmd/gaol/playground"
)

// embedIn is the folder whose files package playground embeds.
const embedIn = "cmd/gaol/playground/built"

func main() {
	b := &bundler{}
	flag.StringVar(&b.page, "page", "cmd/gaol/playground/page", "folder with the page's source")
	flag.StringVar(&b.downloads, "downloads", "bin/downloads", "folder in which downloaded packages are kept")
	overlay := flag.String("overlay", "", "file for go build's flag -overlay, to which the files are added")
	flag.Parse()
	if err := run(b, *overlay, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(b *bundler, overlay string, args []string) error {
	if len(args) != 1 {
		return errors.New("want one folder")
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	if b.page, err = filepath.Abs(b.page); err != nil {
		return err
	}
	files, err := b.bundle(context.Background())
	if err != nil {
		return err
	}
	if err := writeFiles(dir, files); err != nil {
		return err
	}
	if overlay == "" {
		return nil
	}
	target, err := filepath.Abs(embedIn)
	if err != nil {
		return err
	}
	if _, err := os.Stat(target); err != nil {
		return fmt.Errorf("this is not the repository: %w", err)
	}
	return addToOverlay(overlay, target, dir)
}

// writeFiles replaces the folder dir.
func writeFiles(dir string, files map[string][]byte) error {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	for _, name := range playground.Files {
		text, ok := files[name]
		if !ok || len(text) == 0 {
			return fmt.Errorf("%s is missing or empty", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
