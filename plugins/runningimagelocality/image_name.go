// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"strings"

	"github.com/docker/distribution/reference"
	"k8s.io/utils/lru"
)

// nameCacheSize is the number of image names that are cached with their normalised form. Parsing takes some
// microseconds, and a look-up a tenth of one. A cluster uses few names, of about 300 bytes each.
const nameCacheSize = 8192

// normalise returns the full form of an image name in a pod or from a runtime, and false if the name is invalid. It
// follows the rules of the container runtimes, with the library that kubelet uses too:
//   - no registry means docker.io, and there no directory means library: busybox:1 is docker.io/library/busybox:1;
//   - neither tag nor digest means the tag latest;
//   - a digest identifies the image alone, and the tag is dropped.
func normalise(image string) (string, bool) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", false
	}
	if digested, ok := named.(reference.Digested); ok {
		return named.Name() + "@" + digested.Digest().String(), true
	}
	return reference.TagNameOnly(named).String(), true
}

// imageOf removes the prefixes of dockershim from a container's imageID: "docker-pullable://" or "docker://".
func imageOf(imageID string) string {
	if i := strings.Index(imageID, "://"); i >= 0 {
		return imageID[i+len("://"):]
	}
	return imageID
}

// names normalises names, with a cache.
type names struct {
	// cache maps names to normalised names, and invalid names to "".
	cache *lru.Cache
}

func newNames() *names {
	return &names{cache: lru.New(nameCacheSize)}
}

// normalise is like the function of that name. It may be called in parallel.
func (n *names) normalise(image string) (string, bool) {
	if known, ok := n.cache.Get(image); ok {
		name := known.(string)
		return name, name != ""
	}
	name, ok := normalise(image)
	n.cache.Add(image, name)
	return name, ok
}

// digest returns the normalised name of a container's imageID, and false if it is not a digest of a repository: some
// runtimes report the id of the image's configuration, which a pod cannot use.
func (n *names) digest(imageID string) (string, bool) {
	name, ok := n.normalise(imageOf(imageID))
	return name, ok && strings.Contains(name, "@")
}
