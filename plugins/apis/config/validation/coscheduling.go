// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"time"

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
	errs := validateNotNegative(path.Child("permitWaitingTimeSeconds"), args.PermitWaitingTimeSeconds)
	if denied := args.DeniedPGExpirationTimeSeconds; denied != nil {
		errs = append(errs, validateNotNegative(path.Child("deniedPGExpirationTimeSeconds"), *denied)...)
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

func validateNotNegative(path *field.Path, value int64) field.ErrorList {
	if value < 0 {
		return field.ErrorList{field.Invalid(path, value, "must be greater than or equal to 0")}
	}
	return nil
}
