// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"kube-scheduler-fork/build/nextstep"
)

// Compare returns the digest of an image in two archives, or an error with the first file that differs, and why.
func Compare(tag name.Tag, first, second string) (digest string, err error) {
	var images [2]v1.Image
	var digests [2]v1.Hash
	for i, path := range []string{first, second} {
		if images[i], err = tarball.ImageFromPath(path, &tag); err == nil {
			digests[i], err = images[i].Digest()
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
	}
	if digests[0] == digests[1] {
		return digests[0].String(), nil
	}
	layers, err := images[0].Layers()
	if err != nil {
		return "", err
	}
	others, err := images[1].Layers()
	if err != nil {
		return "", err
	}
	for i := range min(len(layers), len(others)) {
		if err := compareLayers(layers[i], others[i]); err != nil {
			return "", err
		}
	}
	if len(layers) != len(others) {
		return "", differ(fmt.Sprintf("%d and %d layers", len(layers), len(others)), "")
	}
	config, err := images[0].RawConfigFile()
	if err != nil {
		return "", err
	}
	other, err := images[1].RawConfigFile()
	if err != nil {
		return "", err
	}
	if !bytes.Equal(config, other) {
		return "", differ("the image's configuration", text(bytes.ReplaceAll(config, []byte(","), []byte(",\n")), bytes.ReplaceAll(other, []byte(","), []byte(",\n"))))
	}
	return "", differ("only the compression of the layers", "")
}

func differ(what, why string) error {
	err := errors.New("the images have other bytes; the first difference: " + what)
	if why != "" {
		err = fmt.Errorf("%w: %s", err, why)
	}
	return nextstep.With(err, "git checkout the commit from which the bundle was made, which its provenance names, then make rebuild-check again")
}

// compareLayers returns an error with the first file that differs. The files of both are sorted by path.
func compareLayers(first, second v1.Layer) error {
	var readers [2]*tar.Reader
	for i, layer := range []v1.Layer{first, second} {
		content, err := layer.Uncompressed()
		if err != nil {
			return err
		}
		defer content.Close()
		readers[i] = tar.NewReader(content)
	}
	for {
		one, err := readers[0].Next()
		if err != nil && err != io.EOF {
			return err
		}
		other, otherErr := readers[1].Next()
		switch {
		case otherErr != nil && otherErr != io.EOF:
			return otherErr
		case err == io.EOF && otherErr == io.EOF:
			return nil
		case otherErr == io.EOF || err == nil && one.Name < other.Name:
			return differ("/"+one.Name, "only the first has it")
		case err == io.EOF || one.Name > other.Name:
			return differ("/"+other.Name, "only the second has it")
		case one.Mode != other.Mode || !one.ModTime.Equal(other.ModTime) || one.Uid != other.Uid || one.Gid != other.Gid:
			return differ("/"+one.Name, fmt.Sprintf("mode %o and %o, time %s and %s, owner %d:%d and %d:%d",
				one.Mode, other.Mode, one.ModTime.UTC(), other.ModTime.UTC(), one.Uid, one.Gid, other.Uid, other.Gid))
		}
		content, err := io.ReadAll(readers[0])
		if err != nil {
			return err
		}
		otherContent, err := io.ReadAll(readers[1])
		if err != nil {
			return err
		}
		if !bytes.Equal(content, otherContent) {
			return differ("/"+one.Name, why(content, otherContent))
		}
	}
}

// why returns how two files differ: Go binaries in their Go or their settings, texts in a line.
func why(first, second []byte) string {
	one, err := buildinfo.Read(bytes.NewReader(first))
	other, otherErr := buildinfo.Read(bytes.NewReader(second))
	switch {
	case err != nil || otherErr != nil:
		return text(first, second)
	case one.String() != other.String():
		return text([]byte(one.String()), []byte(other.String()))
	}
	return fmt.Sprintf("the same Go and settings, but other code or another version: %d and %d bytes", len(first), len(second))
}

// text returns the first line that differs.
func text(first, second []byte) string {
	if !utf8.Valid(first) || !utf8.Valid(second) {
		return fmt.Sprintf("%d and %d bytes", len(first), len(second))
	}
	lines, others := strings.Split(string(first), "\n"), strings.Split(string(second), "\n")
	for i := range min(len(lines), len(others)) {
		if lines[i] != others[i] {
			return fmt.Sprintf("line %d is %q and %q", i+1, strings.TrimSpace(lines[i]), strings.TrimSpace(others[i]))
		}
	}
	return fmt.Sprintf("%d and %d lines", len(lines), len(others))
}
