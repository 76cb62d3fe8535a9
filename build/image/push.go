// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"kube-scheduler-fork/build/nextstep"
)

// Push uploads a manifest list and its images to registry/kube-scheduler:tag, with the credentials that docker login or
// podman login stored, and returns the reference by digest. A registry on loopback may use plain HTTP.
func Push(ctx context.Context, registry, tag string, index v1.ImageIndex) (name.Digest, error) {
	if registry == "" {
		return name.Digest{}, nextstep.With(errors.New("no registry is given"),
			"make push REGISTRY=registry.example.com/team")
	}
	reference, err := name.NewTag(strings.TrimSuffix(registry, "/")+"/kube-scheduler:"+tag, name.StrictValidation)
	if err != nil {
		return name.Digest{}, nextstep.With(fmt.Errorf("registry: %w", err),
			"make push REGISTRY=registry.example.com/team")
	}
	if err := remote.WriteIndex(reference, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return name.Digest{}, nextstep.With(fmt.Errorf("pushing %s: %w", reference, err),
			"docker login %s, or check the registry's address, then make push REGISTRY=%s", reference.RegistryStr(), registry)
	}
	digest, err := index.Digest()
	if err != nil {
		return name.Digest{}, err
	}
	return reference.Context().Digest(digest.String()), nil
}
