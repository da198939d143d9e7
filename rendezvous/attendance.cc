#include "rendezvous/attendance.h"
