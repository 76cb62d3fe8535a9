// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

const (
	// maxAttemptTimeout bounds the time for which an attempt for a gang blocks all other pods.
	maxAttemptTimeout = 10 * time.Second
	// maxReservation bounds the time for which nodes may stay idle for a gang that does not fit.
	maxReservation = time.Hour
	maxHalfGangAge = 24 * time.Hour
)

// ValidateCoschedulingArgs checks that the topology keys are label keys, and the ranges of the other fields.
func ValidateCoschedulingArgs(path *field.Path, args *config.CoschedulingArgs) error {
	errs := apivalidation.ValidateNonnegativeField(*args.PermitWaitingTimeSeconds, path.Child("permitWaitingTimeSeconds"))
	if denied := args.DeniedPGExpirationTimeSeconds; denied != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(*denied, path.Child("deniedPGExpirationTimeSeconds"))...)
	}
	if args.RequiredTopologyKey != "" {
		errs = append(errs, metav1validation.ValidateLabelName(args.RequiredTopologyKey, path.Child("requiredTopologyKey"))...)
	}
	if args.PreferredTopologyKey != "" {
		errs = append(errs, metav1validation.ValidateLabelName(args.PreferredTopologyKey, path.Child("preferredTopologyKey"))...)
	}
	errs = append(errs, validateDuration(path.Child("attemptTimeout"), args.AttemptTimeout, time.Millisecond, maxAttemptTimeout)...)
	errs = append(errs, validateDuration(path.Child("reservation"), args.Reservation, 0, maxReservation)...)
	errs = append(errs, validateDuration(path.Child("giveUpHalfGangsAfter"), args.GiveUpHalfGangsAfter, 0, maxHalfGangAge)...)
	return errs.ToAggregate()
}
