// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"kube-scheduler-fork/build/nextstep"
)

// entry is a file of an image, or its configuration.
type entry struct {
	name, attributes string
	content          []byte
}

// Compare returns a sentence with the digest of the image that two archives have in common, or an error with the first
// file that differs, and why. An archive may have the older form, with an item of the image for each name.
func Compare(tag name.Tag, first, second string) (same string, err error) {
	var digests [2]v1.Hash
	var contents [2][]entry
	for i, path := range []string{first, second} {
		image, err := tarball.ImageFromPath(path, &tag)
		if err == nil {
			digests[i], err = image.Digest()
		}
		if err == nil {
			contents[i], err = entries(image)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
	}
	if digests[0] == digests[1] {
		same, err := alike(first, second)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s: image %s", same, digests[0]), nil
	}
	difference := "only the compression of the layers"
	for i, one := range contents[0] {
		// The last entry is the configuration in both.
		other := contents[1][min(i, len(contents[1])-1)]
		if one.name != other.name {
			difference = fmt.Sprintf("the first has %s where the second has %s", one.name, other.name)
		} else if one.attributes != other.attributes {
			difference = fmt.Sprintf("%s: %s and %s", one.name, one.attributes, other.attributes)
		} else if !bytes.Equal(one.content, other.content) {
			difference = one.name + ": " + why(one.content, other.content)
		} else {
			continue
		}
		break
	}
	return "", nextstep.With(fmt.Errorf("the images have other bytes; the first difference: %s", difference),
		"git checkout the commit from which the bundle was made, which its provenance names, then make rebuild-check again")
}

// alike returns what two archives of one image have in common: their bytes, or only the image.
func alike(paths ...string) (string, error) {
	var sums [2][sha256.Size]byte
	form := ""
	for i, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		sums[i] = sha256.Sum256(content)
		manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		if len(manifest) > 1 {
			form = fmt.Sprintf(" (the %s archive has the older form, with an item for each name)", []string{"first", "second"}[i])
		}
	}
	if sums[0] == sums[1] {
		return "the same bytes", nil
	}
	return "the same layers and configuration" + form, nil
}

// entries returns the files of an image, layer by layer, and then its configuration, with a line for each field.
func entries(image v1.Image) ([]entry, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	var found []entry
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			return nil, err
		}
		defer content.Close()
		for reader := tar.NewReader(content); ; {
			header, err := reader.Next()
			if err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			text, err := io.ReadAll(reader)
			if err != nil {
				return nil, err
			}
			attributes := fmt.Sprintf("mode %o, owner %d:%d, time %s", header.Mode, header.Uid, header.Gid, header.ModTime.UTC())
			found = append(found, entry{"/" + header.Name, attributes, text})
		}
	}
	config, err := image.RawConfigFile()
	return append(found, entry{name: "the image's configuration", content: bytes.ReplaceAll(config, []byte(","), []byte(",\n"))}), err
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
