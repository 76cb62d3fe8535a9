// SPDX-License-Identifier: Apache-2.0

package extensionpointlogger

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// redactedLength is the number of hex digits of a redacted name: 48 bits, with which 100,000 names have a collision
// with a chance of only one in 50,000.
const redactedLength = 12

// processKey is the key for the hashes of names. All profiles share it, so that a node has the same hash in all lines.
// It is never written anywhere, so that nobody can find names by comparing hashes.
var processKey struct {
	once  sync.Once
	bytes [sha256.Size]byte
	err   error
}

// names returns names unchanged or, with a key, redacted.
type names struct {
	key []byte
}

func newNames(redact bool) (names, error) {
	if !redact {
		return names{}, nil
	}
	processKey.once.Do(func() {
		_, processKey.err = rand.Read(processKey.bytes[:])
	})
	if processKey.err != nil {
		return names{}, fmt.Errorf("%s: cannot create a random key to redact names: %w", Name, processKey.err)
	}
	return names{key: processKey.bytes[:]}, nil
}

// of returns the name, or the first digits of its HMAC-SHA-256 (RFC 2104).
func (n names) of(name string) string {
	if n.key == nil {
		return name
	}
	hash := hmac.New(sha256.New, n.key)
	hash.Write([]byte(name))
	return hex.EncodeToString(hash.Sum(nil))[:redactedLength]
}

// ofPod returns the results of of for the pod's namespace and name.
func (n names) ofPod(pod *v1.Pod) klog.ObjectRef {
	return klog.KRef(n.of(pod.Namespace), n.of(pod.Name))
}
