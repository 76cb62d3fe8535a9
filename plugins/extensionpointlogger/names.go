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

// redactedLength is how many hex digits stand for a name: 48 bits, with which even among 100,000 names two are alike
// with a chance of one in 50,000 only.
const redactedLength = 12

// processKey is what names are hashed with. It is the one thing that the profiles share, so that a node has the same
// hash in the lines of all of them; it is never written anywhere, so that names cannot be tried to see whether the
// hashes match.
var processKey struct {
	once  sync.Once
	bytes [sha256.Size]byte
	err   error
}

// names writes names as they are or, with a key, redacted.
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
		return names{}, fmt.Errorf("%s: no random key to redact names with: %w", Name, processKey.err)
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

// ofPod returns the pod's namespace and name, each as of writes it.
func (n names) ofPod(pod *v1.Pod) klog.ObjectRef {
	return klog.KRef(n.of(pod.Namespace), n.of(pod.Name))
}
