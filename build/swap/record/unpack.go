// SPDX-License-Identifier: Apache-2.0

package record

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"golang.org/x/sys/unix"

	"kube-scheduler-fork/build/nextstep"
)

// Unpack writes the files of the image into a directory.
func (a *Archive) Unpack(folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	content := mutate.Extract(a.image)
	defer content.Close()
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("cannot read %s: %w", a.Path, err)
		}
		if err := unpackFile(root, header, reader); errors.Is(err, unix.ENOSPC) {
			where := filepath.Dir(filepath.Dir(folder))
			return nextstep.With(fmt.Errorf("cannot unpack %s into %s to check it: %w", a.Path, where, err),
				"df -h %s; make room for %d MB there, then run this again", where, a.size()>>20+1)
		} else if err != nil {
			return fmt.Errorf("cannot unpack %s: %w", a.Path, err)
		}
	}
	if _, err := root.Stat(SchedulerInImage); err != nil {
		return nextstep.With(fmt.Errorf("%s has no /%s", a.Path, SchedulerInImage),
			"use the kube-scheduler.tar of the release bundle")
	}
	return nil
}

// unpackFile writes one file of an image. It skips devices and other special files, which the check does not need.
func unpackFile(root *os.Root, header *tar.Header, content io.Reader) error {
	name := strings.TrimPrefix(path.Clean("/"+header.Name), "/")
	if name == "" {
		return nil
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, name)
	case tar.TypeLink:
		return root.Link(strings.TrimPrefix(path.Clean("/"+header.Linkname), "/"), name)
	case tar.TypeReg:
		file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, header.FileInfo().Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		return errors.Join(err, file.Close())
	}
	return nil
}

// size returns the total size of the image's files in bytes.
func (a *Archive) size() int64 {
	content := mutate.Extract(a.image)
	defer content.Close()
	reader, size := tar.NewReader(content), int64(0)
	for {
		header, err := reader.Next()
		if err != nil {
			return size
		}
		size += header.Size
	}
}
