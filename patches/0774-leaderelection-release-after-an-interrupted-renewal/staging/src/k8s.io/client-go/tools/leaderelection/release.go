// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	rl "k8s.io/client-go/tools/leaderelection/resourcelock"
)

// writeReleased writes the record of a released lease. The lock may have an old version of the lease, or none: the end of
// the context can interrupt a renewal that the API server applies nevertheless, also later than this reads the lease.
func (le *LeaderElector) writeReleased(released rl.LeaderElectionRecord) error {
	ctx, cancel := context.WithTimeout(context.Background(), le.config.RenewDeadline)
	defer cancel()
	if err := le.config.Lock.Update(ctx, released); err == nil {
		return nil
	}
	for {
		current, _, err := le.config.Lock.Get(ctx)
		if err != nil {
			return err
		}
		if current.HolderIdentity != le.config.Lock.Identity() {
			return fmt.Errorf("the lease is held by %q", current.HolderIdentity)
		}
		if err := le.config.Lock.Update(ctx, released); !errors.IsConflict(err) {
			return err
		}
		select {
		case <-time.After(le.config.RetryPeriod / 10):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
