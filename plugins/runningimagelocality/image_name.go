// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"strings"

	"github.com/docker/distribution/reference"
	"k8s.io/utils/lru"
)

// nameCacheSize is how many different image names, as they are written, are kept with their normalised form. A parse
// costs some microseconds and a look-up a tenth of one; a cluster uses few names again and again. A name takes about
// 300 bytes.
const nameCacheSize = 8192

// normalise returns the full form of an image name as it stands in a pod or as a runtime reports it, and false if it is
// none. It follows the rules of the container runtimes, by the library that kubelet uses too:
//   - no registry means docker.io, and there no folder means library: busybox:1 is docker.io/library/busybox:1;
//   - neither tag nor digest means the tag latest;
//   - with a digest, the digest alone says which image it is, and the tag is dropped.
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

// imageOf takes away what dockershim writes before the names in a container's imageID: "docker-pullable://" or
// "docker://".
func imageOf(imageID string) string {
	if i := strings.Index(imageID, "://"); i >= 0 {
		return imageID[i+len("://"):]
	}
	return imageID
}

// names normalises names and remembers them.
type names struct {
	// cache holds normalised names by the names as written; the empty string for what is no name.
	cache *lru.Cache
}

func newNames() *names {
	return &names{cache: lru.New(nameCacheSize)}
}

// normalise does what the function of that name does. It may be called in parallel.
func (n *names) normalise(image string) (string, bool) {
	if known, ok := n.cache.Get(image); ok {
		name := known.(string)
		return name, name != ""
	}
	name, ok := normalise(image)
	n.cache.Add(image, name)
	return name, ok
}

// digest returns the normalised name of a container's imageID, and false if that names no digest of a repository: some
// runtimes give the id of the image's configuration instead, which no pod can ask for.
func (n *names) digest(imageID string) (string, bool) {
	name, ok := n.normalise(imageOf(imageID))
	return name, ok && strings.Contains(name, "@")
}
