// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push uploads a manifest list and its images to registry/kube-scheduler:tag, with the credentials that docker login or
// podman login stored, and returns the reference by digest. A registry on the loopback interface may speak plain HTTP.
func Push(ctx context.Context, registry, tag string, index v1.ImageIndex) (name.Digest, error) {
	if registry == "" {
		return name.Digest{}, fmt.Errorf("no registry is given; next: make push REGISTRY=registry.example.com/team")
	}
	reference, err := name.NewTag(strings.TrimSuffix(registry, "/")+"/kube-scheduler:"+tag, name.StrictValidation)
	if err != nil {
		return name.Digest{}, fmt.Errorf("registry: %w; next: make push REGISTRY=registry.example.com/team", err)
	}
	if err := remote.WriteIndex(reference, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return name.Digest{}, fmt.Errorf("pushing %s: %w; next: docker login %s, or check the registry's address, then make push REGISTRY=%s",
			reference, err, reference.RegistryStr(), registry)
	}
	digest, err := index.Digest()
	if err != nil {
		return name.Digest{}, err
	}
	return reference.Context().Digest(digest.String()), nil
}
