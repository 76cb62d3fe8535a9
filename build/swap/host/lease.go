// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/pointer"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
)

// Holder returns the holder of a lease; the zero record if no
// scheduler has ever held it, or the last one has released it.
func (c *Cluster) Holder(ctx context.Context, lease schedulerpod.Lease) (resourcelock.LeaderElectionRecord, error) {
	found, err := c.Client.CoordinationV1().Leases(lease.Namespace).Get(ctx, lease.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return resourcelock.LeaderElectionRecord{}, nil
	} else if err != nil {
		return resourcelock.LeaderElectionRecord{}, nextstep.With(
			fmt.Errorf("cannot read the scheduler's lease %s/%s: %w", lease.Namespace, lease.Name, err),
			"kubectl -n %s get lease %s", lease.Namespace, lease.Name)
	}
	return *resourcelock.LeaseSpecToLeaderElectionRecord(&found.Spec), nil
}

// release releases a lease whose holder is dead, as the holder would have done on shutdown, and reports whether the
// lease is free now. The API server rejects the update if the lease was changed since it was read.
func (c *Cluster) release(ctx context.Context, lease schedulerpod.Lease, dead string) (bool, error) {
	leases := c.Client.CoordinationV1().Leases(lease.Namespace)
	found, err := leases.Get(ctx, lease.Name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	if pointer.StringDeref(found.Spec.HolderIdentity, "") != dead {
		return true, nil
	}
	now := metav1.NowMicro()
	found.Spec.HolderIdentity, found.Spec.LeaseDurationSeconds = pointer.String(""), pointer.Int32(1)
	found.Spec.AcquireTime, found.Spec.RenewTime = &now, &now
	_, err = leases.Update(ctx, found, metav1.UpdateOptions{})
	return err == nil, err
}

// IsHere reports whether a lease holder is a scheduler of this host.
// kube-scheduler's identity is the host name, "_" and a random part.
func IsHere(identity string) bool {
	name, err := os.Hostname()
	return err == nil && strings.HasPrefix(identity, name+"_")
}
